/** Addresses of pages that show what one user owns. Pure. */

/** With `owner` if it is somebody else's: the page then asks the API for that user's. */
export function pageOfJob(id: string, owner?: string): string {
  return `/jobs/${id}${ofOwner(owner)}`;
}

export function pageOfTask(id: string, owner?: string): string {
  return `/tasks/${id}${ofOwner(owner)}`;
}

export function pageOfGroup(id: string, owner?: string): string {
  return `/groups/${id}${ofOwner(owner)}`;
}

export function ofOwner(owner: string | undefined): string {
  return owner === undefined ? '' : `?owner=${encodeURIComponent(owner)}`;
}

export function pageOfIntakeLetter(id: string, owner?: string): string {
  return `/dead-letters/intake/${id}${ofOwner(owner)}`;
}

/** The form of a new job like this one, or of a failed job that runs again with changes. */
export function pageOfAnotherJob(how: 'from' | 'retry', id: string, owner?: string): string {
  return `/jobs/new?${new URLSearchParams({ [how]: id, ...(owner === undefined ? {} : { owner }) }).toString()}`;
}

export function pageOfTeam(id: string): string {
  return `/teams/${id}`;
}
