/** What the API tells, kept fresh while somebody looks. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { apiError } from './api/client';
/**
 * Ask at once, whenever `key` changes, and every `every` milliseconds while the page is visible (0: never again).
 * What is shown stays until something newer is there. `every` may depend on what was found.
 */
export function useLive(key, ask, every = 5_000) {
    const [found, setFound] = useState({ key, data: null, error: null });
    const [turn, setTurn] = useState(0);
    const asking = useRef(ask);
    const pace = useRef(every);
    asking.current = ask;
    pace.current = every;
    useEffect(() => {
        let over = false;
        let timer;
        let latest = null;
        const later = () => {
            const wait = typeof pace.current === 'function' ? pace.current(latest) : pace.current;
            if (!over && wait > 0)
                timer = setTimeout(() => void look(), wait);
        };
        const look = async () => {
            if (document.hidden)
                return later();
            try {
                const data = await asking.current();
                if (over)
                    return;
                latest = data;
                setFound({ key, data, error: null });
            }
            catch (error) {
                if (over)
                    return;
                const told = apiError(error);
                setFound((before) => ({ key, data: before.key === key ? before.data : null, error: told }));
                if (told.status === 404)
                    return;
            }
            later();
        };
        void look();
        return () => {
            over = true;
            clearTimeout(timer);
        };
    }, [key, turn]);
    const reload = useCallback(() => setTurn((before) => before + 1), []);
    const current = found.key === key ? found : { data: null, error: null };
    return { data: current.data, error: current.error, loading: current.data === null && current.error === null, reload };
}
/** The value, once it has not changed for so long. */
export function useSettled(value, ms) {
    const [settled, setSettled] = useState(value);
    useEffect(() => {
        const timer = setTimeout(() => setSettled(value), ms);
        return () => clearTimeout(timer);
    }, [value, ms]);
    return settled;
}
