// The theme leaves out what screen readers and the keyboard need: names and roles in its search, which is in a shadow root, and
// a way to scroll wide tables.
const completed = new WeakSet();
const complete = (root) => {
  for (const input of root.querySelectorAll('input[role=combobox]')) {
    input.setAttribute('role', 'searchbox');
    input.setAttribute('aria-label', 'Search');
  }
  for (const button of root.querySelectorAll('button:not([aria-label])')) {
    if (!button.textContent.trim() && !button.title) button.setAttribute('aria-label', 'Search options');
  }
};
const watch = () => {
  for (const table of document.querySelectorAll('.md-typeset__scrollwrap:not([tabindex])')) table.tabIndex = 0;
  for (const { shadowRoot: root } of document.querySelectorAll('body > *')) {
    if (!root || completed.has(root)) continue;
    completed.add(root);
    complete(root);
    new MutationObserver(() => complete(root)).observe(root, { childList: true, subtree: true });
  }
};
new MutationObserver(watch).observe(document.body, { childList: true, subtree: true });
watch();
