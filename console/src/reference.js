/** The API reference: Redoc shows the OpenAPI document of this stage. A page of its own: the console does not load Redoc. */
import './reference.css';
import address from 'redoc/bundles/redoc.standalone.js?url'; // loaded as it is: a bundler cannot read it
const options = {
    disableSearch: true, // its worker is a blob, which the content security policy refuses
    expandResponses: '200,201',
};
const script = document.createElement('script');
script.src = address;
script.addEventListener('load', () => void Redoc.init('/api/v1/openapi.json', options, document.getElementById('reference')));
document.head.append(script);
