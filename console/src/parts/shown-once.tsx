/** A dialog with a secret that no later answer shows. It closes only by its buttons. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import CopyToClipboard from '@cloudscape-design/components/copy-to-clipboard';
import FormField from '@cloudscape-design/components/form-field';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import type { ReactNode } from 'react';

import { Code } from './parts';

export interface Shown {
  label: string;
  text: string;
  description?: string;
}

interface Props {
  title: string;
  warning: string;
  texts: readonly Shown[];
  onClose: () => void;
}

export function ShownOnce({ title, warning, texts, onClose }: Props): ReactNode {
  return (
    <Modal
      visible
      size="large"
      header={title}
      closeAriaLabel="Close"
      onDismiss={({ detail }) => detail.reason !== 'overlay' && onClose()}
      footer={<Box float="right"><Button variant="primary" onClick={onClose}>Done</Button></Box>}
    >
      <SpaceBetween size="m">
        <Alert type="warning">{warning}</Alert>
        {texts.map(({ label, text, description }) => (
          <FormField
            key={label}
            stretch
            label={label}
            description={description}
            secondaryControl={<CopyToClipboard copyButtonAriaLabel={`Copy: ${label}`} copyButtonText="Copy" copySuccessText="Copied" copyErrorText="Not copied" textToCopy={text} />}
          >
            <Code label={label} text={text} />
          </FormField>
        ))}
      </SpaceBetween>
    </Modal>
  );
}
