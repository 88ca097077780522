import { jsx as _jsx } from "react/jsx-runtime";
/** A folded part of a form. */
import ExpandableSection from '@cloudscape-design/components/expandable-section';
import { useEffect, useState } from 'react';
/** A part that is closed at first, with a line on what is set in it. It opens when something in it is wrong, and stays open when that is mended. */
export function Section({ header, summary, wrong, children }) {
    const [expanded, setExpanded] = useState(false);
    useEffect(() => {
        if (wrong)
            setExpanded(true);
    }, [wrong]);
    return (_jsx(ExpandableSection, { headerText: header, headerDescription: summary, expanded: expanded || wrong, onChange: ({ detail }) => setExpanded(detail.expanded), children: children }));
}
export function anyOf(errors, ...prefixes) {
    return Object.keys(errors).some((field) => prefixes.some((prefix) => field.startsWith(prefix)));
}
