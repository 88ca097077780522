import { jsx as _jsx } from "react/jsx-runtime";
/** A link to the documentation, which opens in a new tab. */
import Link from '@cloudscape-design/components/link';
export function DocsLink({ href, children }) {
    return (_jsx(Link, { external: true, href: href, externalIconAriaLabel: "opens in a new tab", children: children }));
}
