import { jsx as _jsx } from "react/jsx-runtime";
/** One task of a user, found by its name. */
import Select from '@cloudscape-design/components/select';
import { useState } from 'react';
import { api, take } from '../api/client';
import { useLive, useSettled } from '../live';
import { remember, useTaskNames } from './task-names';
const SHOWN = 50;
const ANY = { value: '', label: 'Any task' };
export function TaskChoice({ task, owner, onChange }) {
    const [open, setOpen] = useState(false);
    const [typed, setTyped] = useState('');
    const name = useSettled(typed.trim(), 300);
    const found = useLive(`choice ${owner ?? ''} ${name} ${open}`, async () => {
        if (!open)
            return [];
        const { items } = await take(api.GET('/api/v1/tasks', { params: { query: { name: name || undefined, limit: SHOWN, owner } } }));
        for (const each of items)
            remember(each.id, owner, each.name);
        return items;
    }, 0);
    const nameOf = useTaskNames(task === '' ? [] : [{ id: task, owner }]);
    return (_jsx(Select, { ariaLabel: "Task", options: [...(name === '' ? [ANY] : []), ...(found.data ?? []).map((each) => ({ value: each.id, label: each.name }))], selectedOption: task === '' ? ANY : { value: task, label: nameOf(task, owner) ?? task }, filteringType: "manual", filteringPlaceholder: "Find by name", filteringAriaLabel: "Find by name", statusType: found.loading ? 'loading' : found.error === null ? 'finished' : 'error', loadingText: "Loading tasks", errorText: "The tasks could not be loaded", recoveryText: "Try again", empty: "No matching tasks", onLoadItems: ({ detail }) => {
            setOpen(true);
            setTyped(detail.filteringText);
            if (found.error !== null)
                found.reload();
        }, onChange: ({ detail }) => onChange(detail.selectedOption.value ?? '') }));
}
