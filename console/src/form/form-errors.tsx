/** What is wrong with a form that was sent: all of it at the top, and the first wrong field in view. */
import Alert from '@cloudscape-design/components/alert';
import { useEffect, type ReactNode, type RefObject } from 'react';

import type { ApiError } from '../api/client';
import { pageOfError } from '../docs';
import { DocsLink } from '../parts/docs-link';
import { ErrorText } from '../parts/parts';
import type { FieldErrors } from './draft';
import { labelOf } from './labels';

export function FormErrors({ error, errors }: { error: ApiError | null; errors: FieldErrors }): ReactNode {
  const wrong = Object.entries(errors);
  if (error === null || (error.details.length > 0 && wrong.length === 0)) return null; // or all of it is mended
  const page = pageOfError(error.code);
  if (wrong.length === 0) {
    return (
      <div role="alert">
        <Alert type="error" header="Not saved">
          <ErrorText error={error} />
        </Alert>
      </div>
    );
  }
  return (
    <div role="alert">
      <Alert type="error" header={wrong.length === 1 ? 'One field is wrong' : `${wrong.length} fields are wrong`}>
        <ul className="wrong">
          {wrong.map(([field, rule]) => (
            <li key={field}>
              <b>{labelOf(field)}</b>: {rule}
            </li>
          ))}
        </ul>
        {page !== null && <DocsLink href={page}>About this error</DocsLink>}
      </Alert>
    </div>
  );
}

/** Once the API has refused the form, the first wrong field is scrolled to and has the focus. */
export function useFirstError(form: RefObject<HTMLElement | null>, error: ApiError | null): void {
  useEffect(() => {
    if (error === null) return;
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    const shown = field ?? form.current?.querySelector<HTMLElement>('[role="alert"]');
    shown?.scrollIntoView({ block: 'center' });
    field?.focus({ preventScroll: true });
  }, [error, form]);
}
