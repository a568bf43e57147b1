function hoist(name) { return document.querySelector('.flag'); }
hoist('mast');
customElements.define('variant-picker', class Picker extends HTMLElement {});
history.replaceState({}, '', `?variant=${id}`);
