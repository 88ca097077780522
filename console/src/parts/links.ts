/** Addresses of pages that show what one user owns. Pure. */

/** With `user` if it is somebody else's: the page then asks the API for that user's. */
export function pageOfJob(id: string, user?: string): string {
  return `/jobs/${id}${ofUser(user)}`;
}

export function pageOfTask(id: string, user?: string): string {
  return `/tasks/${id}${ofUser(user)}`;
}

export function ofUser(user: string | undefined): string {
  return user === undefined ? '' : `?user=${encodeURIComponent(user)}`;
}

export function pageOfIntakeLetter(id: string, user?: string): string {
  return `/dead-letters/intake/${id}${ofUser(user)}`;
}

/** The form of a new job like this one, or of a failed job that runs again with changes. */
export function pageOfAnotherJob(how: 'from' | 'retry', id: string, user?: string): string {
  return `/jobs/new?${new URLSearchParams({ [how]: id, ...(user === undefined ? {} : { user }) }).toString()}`;
}
