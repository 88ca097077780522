/** The types of all routes of the API, by method and path, from its OpenAPI document. */
import type { paths } from './schema.js';
import type { CallOptions } from './transport.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The routes without `/api/v1`. */
type Routes = { [P in keyof paths as P extends `/api/v1${infer Rest}` ? Rest : never]: paths[P] };

/** The paths that take a method. */
export type PathOf<M extends Method> = {
  [P in keyof Routes]: Routes[P] extends Record<Lowercase<M>, { responses: unknown }> ? P : never;
}[keyof Routes];

type Operation<M extends Method, P extends PathOf<M>> = Routes[P] extends Record<Lowercase<M>, infer O> ? O : never;

type Json<R> = R extends { content: { 'application/json': infer B } } ? B : never;

/** The `data` of a successful answer. */
export type Data<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R } ? Json<R[keyof R & (200 | 201 | 202)]> extends { data: infer D } ? D : unknown : unknown;

/** An entry of a list. */
export type Entry<P extends PathOf<'GET'>> = Data<'GET', P> extends { items: (infer E)[] } ? E : never;

/** The paths of lists with pages. */
export type ListPath = { [P in PathOf<'GET'>]: Data<'GET', P> extends { items: unknown[]; cursor: unknown } ? P : never }[PathOf<'GET'>];

type PathPart<O> = O extends { parameters: { path: infer P } } ? { path: P } : { path?: undefined };

type QueryPart<O> = O extends { parameters: { query: infer Q } } ? { query: Q } : O extends { parameters: { query?: infer Q } } ? { query?: Q } : unknown;

type BodyPart<O> = O extends { requestBody?: never }
  ? { body?: undefined }
  : O extends { requestBody: { content: { 'application/json': infer B } } }
    ? { body: B }
    : O extends { requestBody?: { content: { 'application/json': infer B } } }
      ? { body?: B }
      : { body?: undefined };

/** What a route takes. */
export type RouteOptions<M extends Method, P extends PathOf<M>> = CallOptions &
  PathPart<Operation<M, P>> &
  QueryPart<Operation<M, P>> &
  BodyPart<Operation<M, P>> & {
    headers?: Readonly<Record<string, string>>;
    /** Whether it may be repeated after a lost answer. Default: GET, PUT, DELETE, and calls with an `Idempotency-Key`. */
    idempotent?: boolean;
  };

/** What a list takes, without what the client sets for each page. */
export type ListOptions<P extends ListPath> = Omit<RouteOptions<'GET', P>, 'query' | 'body' | 'idempotent'> & {
  query?: Omit<NonNullable<RouteOptions<'GET', P> extends { query?: infer Q } ? Q : never>, 'limit' | 'cursor'>;
  /** The most entries. Default: all of them. */
  limit?: number;
};

/** The last parameter of a function: it may be absent if nothing in it is required. */
export type Rest<O> = Record<never, never> extends O ? [options?: O] : [options: O];
