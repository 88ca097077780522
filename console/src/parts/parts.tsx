/** Small things that several pages show. */
import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import Link from '@cloudscape-design/components/link';
import Modal from '@cloudscape-design/components/modal';
import SpaceBetween from '@cloudscape-design/components/space-between';
import Spinner from '@cloudscape-design/components/spinner';
import { useEffect, useState, type ReactNode } from 'react';
import { useNavigate } from 'react-router';

import type { ApiError } from '../api/client';
import { pageOfError } from '../docs';
import { read, write } from '../exact';
import type { Live } from '../live';
import { DocsLink } from './docs-link';
import { When } from './time';

/** A link within the console: no reload, but its address can be copied and opened in another tab. */
export function To({ href, children, ...rest }: { href: string; children: ReactNode; variant?: 'primary'; fontSize?: 'body-m'; color?: 'inverted' }): ReactNode {
  const navigate = useNavigate();
  return (
    <Link
      {...rest}
      href={href}
      onFollow={(event) => {
        if (event.detail.external) return;
        event.preventDefault();
        void navigate(href);
      }}
    >
      {children}
    </Link>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Punctual`;
  }, [title]);
}

/** Nothing yet, an error before anything was seen, or the page; an error after that stands above it. */
export function Loaded<T>({ live, what, children }: { live: Live<T>; what: string; children: (data: T) => ReactNode }): ReactNode {
  if (live.data === null) {
    if (live.error !== null) return <Failed error={live.error} what={what} retry={live.reload} />;
    return (
      <Box textAlign="center" padding="xxl">
        <Spinner size="large" /> <Box variant="p">Loading {what}</Box>
      </Box>
    );
  }
  return (
    <SpaceBetween size="m">
      <Stale live={live} />
      {children(live.data)}
    </SpaceBetween>
  );
}

/** That what is shown may be old. */
export function Stale({ live }: { live: Pick<Live<unknown>, 'error' | 'reload' | 'data'> }): ReactNode {
  if (live.error === null || live.data === null) return null;
  return (
    <Alert type="warning" header="Not up to date" action={<Button onClick={live.reload}>Try again</Button>}>
      {live.error.message} The page shows what it loaded before.
    </Alert>
  );
}

export function Failed({ error, what, retry }: { error: ApiError; what: string; retry?: () => void }): ReactNode {
  if (error.status === 403) return <NotForRole text={error.message} />;
  const header = error.status === 404 ? `There is no such ${what}` : `Could not load ${what}`;
  return (
    <Alert type="error" header={header} action={retry && error.status !== 404 ? <Button onClick={retry}>Try again</Button> : undefined}>
      <ErrorText error={error} />
    </Alert>
  );
}

/** The message of an error, the id of its request, and a link to its documentation. */
export function ErrorText({ error: { message, requestId, code } }: { error: ApiError }): ReactNode {
  const page = pageOfError(code);
  return (
    <>
      {message}
      {requestId !== null && <Box color="text-body-secondary">Request {requestId}</Box>}
      {page !== null && <div><DocsLink href={page}>About this error</DocsLink></div>}
    </>
  );
}

/** A page that the viewer's role does not open. */
export function NotForRole({ text }: { text: string }): ReactNode {
  return (
    <SpaceBetween size="m">
      <Box variant="h1">Not for your role</Box>
      <Alert type="info">
        {text} Go to your <To href="/tasks">tasks</To>.
      </Alert>
    </SpaceBetween>
  );
}

/** Text that others wrote: a long word of it wraps instead of making the page wider. */
export function Words({ children }: { children: ReactNode }): ReactNode {
  return <span className="words">{children}</span>;
}

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A reason of the API, with its instants in the viewer's zone. */
export function Reason({ text }: { text: string }): ReactNode {
  return (
    <Words>
      {text.split(INSTANT).map((part, index) => (index % 2 === 1 ? <When key={index} at={part} /> : part))}
    </Words>
  );
}

/** An empty table: why, and what to do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <Box textAlign="center" color="inherit" padding={{ vertical: 'l' }}>
      <SpaceBetween size="xs">
        <b>{title}</b>
        {children}
      </SpaceBetween>
    </Box>
  );
}

/** Text of any length as it is, in a box that scrolls. */
export function Code({ text, label }: { text: string; label: string }): ReactNode {
  return (
    <pre className="code" tabIndex={0} role="region" aria-label={label}>
      {text}
    </pre>
  );
}

/** Pretty if it is JSON, as it is otherwise. */
export function pretty(text: string): string {
  if (text.length > 200_000) return text;
  try {
    return write(read(text), 2);
  } catch {
    return text;
  }
}

interface Question {
  title: string;
  text: ReactNode;
  yes: string;
  act: () => Promise<void> | void;
}

/** Ask before what cannot be undone. Returns the dialog to show and what opens it. */
export function useConfirm(): [ReactNode, (question: Question) => void] {
  const [question, ask] = useState<Question | null>(null);
  const [busy, setBusy] = useState(false);
  const close = (): void => ask(null);
  const go = async (): Promise<void> => {
    setBusy(true);
    try {
      await question?.act();
    } finally {
      setBusy(false);
      close();
    }
  };
  const dialog = (
    <Modal
      visible={question !== null}
      onDismiss={close}
      header={question?.title}
      closeAriaLabel="Close"
      footer={
        <Box float="right">
          <SpaceBetween direction="horizontal" size="xs">
            <Button variant="link" onClick={close}>
              Cancel
            </Button>
            <Button variant="primary" loading={busy} onClick={() => void go()}>
              {question?.yes}
            </Button>
          </SpaceBetween>
        </Box>
      }
    >
      {question?.text}
    </Modal>
  );
  return [dialog, ask];
}
