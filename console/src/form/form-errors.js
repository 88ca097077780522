import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** What is wrong with a form that was sent: all of it at the top, and the first wrong field in view. */
import Alert from '@cloudscape-design/components/alert';
import { useEffect } from 'react';
import { pageOfError } from '../docs';
import { DocsLink } from '../parts/docs-link';
import { ErrorText } from '../parts/parts';
import { labelOf } from './labels';
export function FormErrors({ error, errors }) {
    const wrong = Object.entries(errors);
    if (error === null || (error.details.length > 0 && wrong.length === 0))
        return null; // or all of it is mended
    const page = pageOfError(error.code);
    if (wrong.length === 0) {
        return (_jsx("div", { role: "alert", children: _jsx(Alert, { type: "error", header: "Not saved", children: _jsx(ErrorText, { error: error }) }) }));
    }
    return (_jsx("div", { role: "alert", children: _jsxs(Alert, { type: "error", header: wrong.length === 1 ? 'One field is wrong' : `${wrong.length} fields are wrong`, children: [_jsx("ul", { className: "wrong", children: wrong.map(([field, rule]) => (_jsxs("li", { children: [_jsx("b", { children: labelOf(field) }), ": ", rule] }, field))) }), page !== null && _jsx(DocsLink, { href: page, children: "About this error" })] }) }));
}
/** Once the API has refused the form, the first wrong field is scrolled to and has the focus. */
export function useFirstError(form, error) {
    useEffect(() => {
        if (error === null)
            return;
        const field = form.current?.querySelector('[aria-invalid="true"]');
        const shown = field ?? form.current?.querySelector('[role="alert"]');
        shown?.scrollIntoView({ block: 'center' });
        field?.focus({ preventScroll: true });
    }, [error, form]);
}
