import { jsx as _jsx, jsxs as _jsxs } from "react/jsx-runtime";
/** Ask before a changed form is left. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useEffect } from 'react';
import { useBlocker } from 'react-router';
/** Returns the dialog to show. `saved` becomes true just before the form itself goes to another page. */
export function useUnsaved(dirty, saved) {
    const blocker = useBlocker(() => dirty && !saved.current);
    useEffect(() => {
        if (!dirty)
            return;
        const warn = (event) => event.preventDefault();
        window.addEventListener('beforeunload', warn);
        return () => window.removeEventListener('beforeunload', warn);
    }, [dirty]);
    return (_jsx(Modal, { visible: blocker.state === 'blocked', onDismiss: () => blocker.reset?.(), header: "Leave without saving?", footer: _jsx(Box, { float: "right", children: _jsxs(SpaceBetween, { direction: "horizontal", size: "xs", children: [_jsx(Button, { variant: "link", formAction: "none", onClick: () => blocker.reset?.(), children: "Stay" }), _jsx(Button, { variant: "primary", formAction: "none", onClick: () => blocker.proceed?.(), children: "Leave" })] }) }), children: "Your changes will be lost." }));
}
