/** A button that copies a request as text: a curl command, or a program with the Python package. */
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import type { ReactNode } from 'react';

import { curlOf, pythonOf, type Call } from '../code';
import { useNotices } from './notices';

const FORMS = {
  curl: { text: 'curl', write: curlOf },
  python: { text: 'Python', write: pythonOf },
};

export function CopyAs({ call, disabled = false }: { call: () => Call; disabled?: boolean }): ReactNode {
  const { done, failed } = useNotices();
  const copy = async (form: keyof typeof FORMS): Promise<void> => {
    const { text, write } = FORMS[form];
    try {
      await navigator.clipboard.writeText(write(window.location.origin, call()));
      done(`Copied as ${text}. Set PUNCTUAL_TOKEN to your token before you run it.`);
    } catch (error) {
      failed('Not copied', error);
    }
  };
  return (
    <ButtonDropdown disabled={disabled} items={Object.entries(FORMS).map(([id, { text }]) => ({ id, text: `Copy as ${text}` }))} onItemClick={({ detail }) => void copy(detail.id as keyof typeof FORMS)}>
      Copy as
    </ButtonDropdown>
  );
}
