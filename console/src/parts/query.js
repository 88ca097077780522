/** The filters of a list, which its address holds: it can be shared and reloaded, and "back" returns to it. */
import { useSearchParams } from 'react-router';
export function useQuery() {
    const [query, setQuery] = useSearchParams();
    const set = (changes) => setQuery((before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) {
            if (value === '')
                next.delete(name);
            else
                next.set(name, value);
        }
        return next;
    }, { replace: true });
    return [query, set];
}
