const SELECTORS = { count: '#cart-count' };

class ProductInfo extends HTMLElement {
  #controller = new AbortController();

  static {
    this.kind = 'product';
  }

  connectedCallback() {
    const form = this.querySelector('.product__info');
    form?.addEventListener('submit', (event) => this.onSubmit(event), { signal: this.#controller.signal });
  }

  disconnectedCallback() {
    this.#controller.abort();
  }

  async onSubmit(event) {
    event.preventDefault();
    const response = await fetch(`${window.Shopify.routes.root}cart/add.js`, {
      method: 'POST',
      body: new FormData(event.target),
    });
    const item = await response.json();
    const parts = { title: item.title, [`key-${item.key}`]: { ...item } };
    updateCount(parts);
  }
}

function updateCount(parts) {
  const count = document.querySelector(SELECTORS.count);
  if (!count) return;
  count.textContent = Object.keys(parts).length;
  document.getElementById('main').classList.add('is-updated');
}

if (!customElements.get('product-info')) {
  customElements.define('product-info', ProductInfo);
}
if (typeof SomeLibrary !== 'undefined') {
  SomeLibrary.start();
}
