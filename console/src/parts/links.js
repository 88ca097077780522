/** Addresses of pages that show what one user owns. Pure. */
/** With `owner` if it is somebody else's: the page then asks the API for that user's. */
export function pageOfJob(id, owner) {
    return `/jobs/${id}${ofOwner(owner)}`;
}
export function pageOfTask(id, owner) {
    return `/tasks/${id}${ofOwner(owner)}`;
}
export function ofOwner(owner) {
    return owner === undefined ? '' : `?owner=${encodeURIComponent(owner)}`;
}
export function pageOfIntakeLetter(id, owner) {
    return `/dead-letters/intake/${id}${ofOwner(owner)}`;
}
/** The form of a new job like this one, or of a failed job that runs again with changes. */
export function pageOfAnotherJob(how, id, owner) {
    return `/jobs/new?${new URLSearchParams({ [how]: id, ...(owner === undefined ? {} : { owner }) }).toString()}`;
}
