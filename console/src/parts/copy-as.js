import { jsx as _jsx } from "react/jsx-runtime";
/** A button that copies a request as text: a curl command, or a program with the Python package. */
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import { curlOf, pythonOf } from '../code';
import { useNotices } from './notices';
const FORMS = {
    curl: { text: 'curl', write: curlOf },
    python: { text: 'Python', write: pythonOf },
};
export function CopyAs({ call, disabled = false }) {
    const { done, failed } = useNotices();
    const copy = async (form) => {
        const { text, write } = FORMS[form];
        try {
            await navigator.clipboard.writeText(write(window.location.origin, call()));
            done(`Copied as ${text}. Set PUNCTUAL_TOKEN to your token before you run it.`);
        }
        catch (error) {
            failed('Not copied', error);
        }
    };
    return (_jsx(ButtonDropdown, { disabled: disabled, items: Object.entries(FORMS).map(([id, { text }]) => ({ id, text: `Copy as ${text}` })), onItemClick: ({ detail }) => void copy(detail.id), children: "Copy as" }));
}
