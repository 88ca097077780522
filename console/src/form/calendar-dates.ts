/** The dates of a calendar as they are typed. Pure. */

const SOON_DAYS = 60;

/** What stands between commas, blanks and line ends; the API says which of it is no date. */
export function datesIn(text: string): string[] {
  return text.split(/[\s,;]+/).filter((each) => each !== '');
}

/** Whether the dates of a calendar are known for less than two months from now. */
export function runsOut(until: string, now: number): boolean {
  return Date.parse(until) - now < SOON_DAYS * 86_400_000;
}
