/** Ask before a changed form is left. */
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import { useEffect, type ReactNode, type RefObject } from 'react';
import { useBlocker } from 'react-router';

/** Returns the dialog to show. `saved` becomes true just before the form itself goes to another page. */
export function useUnsaved(dirty: boolean, saved: RefObject<boolean>): ReactNode {
  const blocker = useBlocker(() => dirty && !saved.current);
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
  }, [dirty]);
  return (
    <Modal
      visible={blocker.state === 'blocked'}
      onDismiss={() => blocker.reset?.()}
      header="Leave without saving?"
      footer={
        <Box float="right">
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" formAction="none" onClick={() => blocker.reset?.()}>
              Stay
            </Button>
            <Button variant="primary" formAction="none" onClick={() => blocker.proceed?.()}>
              Leave
            </Button>
          </SpaceBetween>
        </Box>
      }
    >
      Your changes will be lost.
    </Modal>
  );
}
