/** Words about tasks and jobs of which a list has only the ids. Each is asked for once. */
import { useEffect, useState } from 'react';
const AT_ONCE = 4;
export const keyOf = (id, owner) => `${id} ${owner ?? ''}`;
/** Returns the words of each if they are known by now. `found` keeps them; '' stays what could not be read. */
export function useAsked(found, all, ask) {
    const [, setTurn] = useState(0);
    const wanted = [...new Map(all.map((one) => [keyOf(one.id, one.owner), one])).entries()].filter(([key]) => !found.has(key));
    const key = wanted.map(([each]) => each).join('|');
    useEffect(() => {
        if (key === '')
            return;
        let over = false;
        const left = [...wanted];
        const work = async () => {
            for (let next = left.shift(); next !== undefined && !over; next = left.shift()) {
                const [name, one] = next;
                found.set(name, await ask(one).catch(() => '')); // deleted, or not to be read: the id is shown
                if (!over)
                    setTurn((before) => before + 1);
            }
        };
        void Promise.all(Array.from({ length: AT_ONCE }, work));
        return () => {
            over = true;
        };
    }, [key]);
    return (id, owner) => found.get(keyOf(id, owner)) || undefined;
}
