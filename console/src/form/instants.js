/** Between an instant and what two inputs show of it, in the viewer's zone. Pure. */
const pad = (n) => String(n).padStart(2, '0');
export function partsOf(instant) {
    if (instant === '')
        return { date: '', time: '' };
    const at = new Date(instant);
    return {
        date: `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`,
        time: `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`,
    };
}
/** Empty until there is a date; a time that is not (all) there counts as zeros. */
export function instantOf(date, time) {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(date))
        return '';
    const [hours = '0', minutes = '0', seconds = '0'] = time.split(':');
    const at = new Date(`${date}T00:00:00`);
    at.setHours(Number(hours), Number(minutes || '0'), Number(seconds || '0'));
    return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}
