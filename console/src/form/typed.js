/** What is typed, as the API takes it. Pure. */
/** A number as typed; what is none goes to the API as it is, which says what is wrong with it. */
export function number(text) {
    const trimmed = text.trim();
    if (trimmed === '')
        return undefined;
    const value = Number(trimmed);
    return Number.isNaN(value) ? trimmed : value;
}
