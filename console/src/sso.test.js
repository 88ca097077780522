import { describe, expect, it } from 'vitest';
import { challengeOf, readBack } from './api/sso';
const BEGUN = { state: 'mine', verifier: 'v', page: '/jobs', signOutUrl: '' };
const at = (query, path = '/signed-in') => new URL(`https://console.example.com${path}?${query}`);
describe('the way back from the identity provider', () => {
    it('has a code with our state', () => {
        expect(readBack(at('code=c&state=mine'), BEGUN)).toEqual({ code: 'c' });
    });
    it('is refused with another state, or if nothing was begun here', () => {
        expect(readBack(at('code=c&state=other'), BEGUN)).toHaveProperty('refusal');
        expect(readBack(at('code=c'), BEGUN)).toHaveProperty('refusal');
        expect(readBack(at('code=c&state=mine'), null)).toHaveProperty('refusal');
    });
    it('shows the words of a refusal', () => {
        expect(readBack(at('error=access_denied&error_description=Not%20for%20you&state=mine'), BEGUN)).toEqual({ refusal: 'Not for you' });
    });
    it('is one address alone', () => {
        expect(readBack(at('code=c&state=mine', '/jobs'), BEGUN)).toBeNull();
    });
});
it('the challenge is that of RFC 7636, appendix B', async () => {
    expect(await challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});
