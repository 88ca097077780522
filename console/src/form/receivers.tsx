/** The receivers of notifications about a job or a task's runs, and what they are notified of. */
import AttributeEditor from '@cloudscape-design/components/attribute-editor';
import Checkbox from '@cloudscape-design/components/checkbox';
import ColumnLayout from '@cloudscape-design/components/column-layout';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Select from '@cloudscape-design/components/select';
import SpaceBetween from '@cloudscape-design/components/space-between';
import type { ReactNode } from 'react';

import { errorOf, type FieldErrors } from './draft';
import { DefaultReceivers, ReceiverNames, useDefaultReceivers } from './names';
import { namesAnyone, OCCASIONS, tellsAnyone, withOccasion, type NotificationsDraft, type Occasion, type Webhook } from './notifications';
import { Seconds } from './numbers';

const FORMATS = [
  { value: 'standard', label: 'Standard', description: 'All fields as JSON, signed' },
  { value: 'slack', label: 'Slack', description: 'A text message; the secret is optional' },
  { value: 'teams', label: 'Teams', description: 'An Adaptive Card; the secret is optional' },
];

interface Props {
  /** The text while there is no receiver. */
  nobody?: string;
  /** The owner of the job or task; undefined: the viewer. */
  owner: string | undefined;
  draft: NotificationsDraft;
  errors: FieldErrors;
  onChange: (draft: NotificationsDraft) => void;
}

export function Receivers({ nobody = 'No notifications.', owner, draft, errors, onChange }: Props): ReactNode {
  const defaults = useDefaultReceivers(owner);
  const set = (changes: Partial<NotificationsDraft>): void => onChange({ ...draft, ...changes });
  const error = (field: string): string | undefined => errors[`notifications.${field}`];
  const change = (index: number, changes: Partial<Webhook>): void =>
    set({ webhooks: draft.webhooks.map((hook, at) => (at === index ? { ...hook, ...changes } : hook)) });
  return (
    <SpaceBetween size="m">
      <AttributeEditor
        items={draft.emails}
        addButtonText="Add e-mail address"
        removeButtonText="Remove"
        removeButtonAriaLabel={(address) => `Remove ${address || 'this address'}`}
        empty={tellsAnyone(draft) ? 'No e-mail addresses' : nobody}
        additionalInfo={<Wrong text={error('emails')} />}
        onAddButtonClick={() => set({ emails: [...draft.emails, ''] })}
        onRemoveButtonClick={({ detail }) => set({ emails: draft.emails.filter((_, at) => at !== detail.itemIndex) })}
        definition={[
          {
            label: 'E-mail address',
            errorText: (_, at) => error(`emails.${at}`),
            control: (address, at) => (
              <Input
                inputMode="email"
                value={address}
                placeholder="ann@example.com"
                onChange={({ detail }) => set({ emails: draft.emails.map((each, index) => (index === at ? detail.value : each)) })}
              />
            ),
          },
        ]}
      />
      <AttributeEditor
        items={draft.webhooks}
        addButtonText="Add webhook"
        removeButtonText="Remove"
        removeButtonAriaLabel={(hook) => `Remove ${hook.url || 'this webhook'}`}
        empty={tellsAnyone(draft) ? 'No webhooks' : undefined}
        additionalInfo={<Wrong text={error('webhooks')} />}
        onAddButtonClick={() => set({ webhooks: [...draft.webhooks, { url: '', signing_secret: '', format: 'standard' }] })}
        onRemoveButtonClick={({ detail }) => set({ webhooks: draft.webhooks.filter((_, at) => at !== detail.itemIndex) })}
        definition={[
          {
            label: 'Webhook',
            errorText: (_, at) => error(`webhooks.${at}.url`),
            control: (hook, at) => (
              <Input value={hook.url} inputMode="url" spellcheck={false} placeholder="https://hooks.example.com/punctual" onChange={({ detail }) => change(at, { url: detail.value })} />
            ),
          },
          {
            label: 'Format',
            errorText: (_, at) => error(`webhooks.${at}.format`),
            control: (hook, at) => (
              <Select
                options={FORMATS}
                selectedOption={FORMATS.find(({ value }) => value === hook.format) ?? { value: hook.format, label: hook.format }}
                onChange={({ detail }) => change(at, { format: detail.selectedOption.value as Webhook['format'] })}
              />
            ),
          },
          {
            label: 'Signing secret',
            errorText: (_, at) => error(`webhooks.${at}.signing_secret`),
            constraintText: 'The name of a stored secret, not its value',
            control: (hook, at) => <Input value={hook.signing_secret} spellcheck={false} onChange={({ detail }) => change(at, { signing_secret: detail.value })} />,
          },
        ]}
      />
      <FormField label="Named receivers" errorText={errorOf(errors, 'notifications.receivers')}>
        <ReceiverNames owner={owner} names={draft.receivers} onChange={(receivers) => set({ receivers })} />
      </FormField>
      {!namesAnyone(draft) && (
        <DefaultReceivers names={defaults} checked={draft.byDefault} onChange={(byDefault) => set({ byDefault })} />
      )}
      {tellsAnyone(draft) && (
        <>
          <FormField label="Notify on" errorText={error('on')} stretch>
            <ColumnLayout columns={3}>
              {(Object.entries(OCCASIONS) as [Occasion, (typeof OCCASIONS)[Occasion]][]).map(([occasion, { label, description }]) => (
                <Checkbox key={occasion} checked={draft.on.includes(occasion)} description={description} onChange={({ detail }) => set({ on: withOccasion(draft.on, occasion, detail.checked) })}>
                  {label}
                </Checkbox>
              ))}
            </ColumnLayout>
          </FormField>
          <ColumnLayout columns={2}>
            <FormField label="Notify after this many failures in a row" errorText={error('after_failures')}>
              <Input type="number" value={draft.afterFailures} onChange={({ detail }) => set({ afterFailures: detail.value })} />
            </FormField>
            <Seconds label="Notify at most every (s)" note="Notifications of the same kind in this time are combined into one" value={draft.digest} error={error('digest_seconds')} onChange={(digest) => set({ digest })} />
          </ColumnLayout>
        </>
      )}
    </SpaceBetween>
  );
}

/** What is wrong with a list and not with one of its rows. */
function Wrong({ text }: { text: string | undefined }): ReactNode {
  return text === undefined ? null : <FormField errorText={text} />;
}
