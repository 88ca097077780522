// Turns the table of "Estimate your month" into a calculator: its numbers become inputs, and its last row shows their sum.
const table = document.querySelector('#estimate-your-month ~ * table, #estimate-your-month ~ table');
if (table) {
  const rows = [...table.tBodies[0].rows];
  const sum = rows.pop().cells[1];
  const parts = rows.map((row) => {
    const input = Object.assign(document.createElement('input'), { type: 'number', min: 0, step: 'any', className: 'calculator' });
    input.value = row.cells[2].textContent;
    input.setAttribute('aria-label', `Number: ${row.cells[0].textContent}`);
    row.cells[2].replaceChildren(input);
    return { input, dollars: Number(row.cells[1].textContent) };
  });
  const add = () => {
    const total = parts.reduce((all, { input, dollars }) => all + dollars * (Number(input.value) || 0), 0);
    sum.textContent = total.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  };
  sum.setAttribute('aria-live', 'polite');
  sum.style.fontWeight = 'bold';
  table.addEventListener('input', add);
  add();
}
