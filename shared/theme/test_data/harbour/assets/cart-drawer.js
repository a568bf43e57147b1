import { trapFocus } from './focus.js';

/* Opens with what the server sent back, closes on Escape or on a click beside it. */
class CartDrawer extends HTMLElement {
  constructor() {
    super();
    this.addEventListener('keyup', (event) => event.code === 'Escape' && this.close());
    this.querySelector('.cart-drawer__overlay').addEventListener('click', () => this.close());
  }

  open(trigger) {
    this.trigger = trigger;
    this.classList.add('is-open');
    trapFocus(this);
  }

  close() {
    this.classList.remove('is-open');
    this.trigger?.focus();
  }

  async renderContents(response) {
    const { sections } = await response.json();
    this.innerHTML = sections['cart-drawer'];
    this.open();
  }
}

customElements.define('cart-drawer', CartDrawer);
