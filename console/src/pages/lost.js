import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
import Alert from '@cloudscape-design/components/alert';
import { mayOversee, useRole } from '../api/session';
import { NotForRole, To, useTitle } from '../parts/parts';
export function Lost() {
    useTitle('Not found');
    return (_jsxs(Alert, { type: "info", header: "There is no such page", children: ["Go to your ", _jsx(To, { href: "/tasks", children: "tasks" }), "."] }));
}
/** A page that the API would refuse to everybody else. */
export function ForOperators({ children }) {
    return mayOversee(useRole()) ? children : _jsx(Refused, {});
}
function Refused() {
    useTitle('Not for your role');
    return _jsx(NotForRole, { text: "Operators and administrators see this page. Ask an administrator if you need it." });
}
