/** A link to the documentation, which opens in a new tab. */
import Link from '@cloudscape-design/components/link';
import type { ReactNode } from 'react';

export function DocsLink({ href, children }: { href: string; children: ReactNode }): ReactNode {
  return (
    <Link external href={href} externalIconAriaLabel="opens in a new tab">
      {children}
    </Link>
  );
}
