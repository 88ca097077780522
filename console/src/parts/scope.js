import { jsx as _jsx } from "react/jsx-runtime";
/** Whose figures a page shows: those of everybody, for who may see them, or one's own. */
import SegmentedControl from '@cloudscape-design/components/segmented-control';
import { useSearchParams } from 'react-router';
import { mayOversee, useRole } from '../api/session';
/** As the address says, so that it can be shared; else everybody's for who may see them. */
export function useScope() {
    const [query, setQuery] = useSearchParams();
    const all = mayOversee(useRole());
    const scope = all && query.get('scope') !== 'own' ? 'all' : 'own';
    const set = (wanted) => setQuery((before) => {
        const next = new URLSearchParams(before);
        next.set('scope', wanted);
        return next;
    }, { replace: true });
    return [scope, set];
}
export function ScopeChoice({ scope, onChange }) {
    if (!mayOversee(useRole()))
        return null;
    return (_jsx(SegmentedControl, { label: "Owner", selectedId: scope, options: [{ id: 'all', text: 'Everyone' }, { id: 'own', text: 'Me' }], onChange: ({ detail }) => onChange(detail.selectedId) }));
}
