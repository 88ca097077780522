/** The scopes of a key or an AWS role as checkboxes. */
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import SpaceBetween from '@cloudscape-design/components/space-between';
import type { ReactNode } from 'react';

import { SCOPES, type Scope } from '../scopes';

interface Props {
  chosen: readonly Scope[];
  /** Those that the viewer may grant. */
  offered: readonly Scope[];
  error: string | undefined;
  onChange: (scopes: Scope[]) => void;
}

export function ScopesField({ chosen, offered, error, onChange }: Props): ReactNode {
  return (
    <FormField label="Permissions" description="No permission includes another one, except Administer." errorText={error}>
      <SpaceBetween size="xs">
        {SCOPES.filter(({ value }) => offered.includes(value)).map(({ value, label, description }) => (
          <Checkbox
            key={value}
            checked={chosen.includes(value)}
            description={`${description} (${value})`}
            onChange={({ detail }) => onChange(detail.checked ? [...chosen, value] : chosen.filter((each) => each !== value))}
          >
            {label}
          </Checkbox>
        ))}
      </SpaceBetween>
    </FormField>
  );
}
