import { jsx as _jsx } from "react/jsx-runtime";
/** Short messages at the top of the page: what was done, what went wrong. */
import Flashbar, {} from '@cloudscape-design/components/flashbar';
import { createContext, useCallback, useContext, useMemo, useState } from 'react';
import { apiError } from '../api/client';
import { ErrorText } from './parts';
const Context = createContext({ done: () => undefined, failed: () => undefined });
const Shown = createContext([]);
const MOST = 4;
const STAYS = 6_000;
export function useNotices() {
    return useContext(Context);
}
export function NoticesProvider({ children }) {
    const [items, setItems] = useState([]);
    const drop = useCallback((id) => setItems((before) => before.filter((item) => item.id !== id)), []);
    const add = useCallback((type, header, said = '', content) => {
        const id = crypto.randomUUID();
        const item = { id, type, header, content, said: `${header} ${said}`, dismissible: true, onDismiss: () => drop(id) };
        // The same message is shown once, however often it comes.
        setItems((before) => [item, ...before.filter((other) => other.said !== item.said)].slice(0, MOST));
        if (type === 'success')
            setTimeout(() => drop(id), STAYS);
    }, [drop]);
    const notices = useMemo(() => ({
        done: (text) => add('success', text),
        failed: (what, error) => {
            const told = apiError(error);
            if (told.status !== 401)
                add('error', what, told.message, _jsx(ErrorText, { error: told }));
        },
    }), [add]);
    return (_jsx(Context, { value: notices, children: _jsx(Shown, { value: items, children: children }) }));
}
/** The messages, and above them what the page has to say all the time. */
export function Flashes({ standing }) {
    return _jsx(Flashbar, { items: [...standing, ...useContext(Shown)] });
}
