const FOCUSABLE = 'a[href], button:enabled, input:enabled, [tabindex]';

export function trapFocus(container) {
  const elements = container.querySelectorAll(FOCUSABLE);
  elements[0]?.focus();
}

export const releaseFocus = (element) => {
  element?.focus();
};
