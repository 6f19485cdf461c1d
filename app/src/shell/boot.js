// Loads the wasm half and wakes each island, parents before children.
const [js, wasm] = __FILES__;
const wake = async (node, mod, parents) => {
  let inner = parents;
  if (node.localName === "leptos-island") {
    parents.at(-1)?.();
    await mod[node.dataset.component]?.(node);
  } else if (node.localName === "leptos-children") {
    inner = [...parents, node.$$on_hydrate];
  }
  for (const child of [...node.children]) await wake(child, mod, inner);
};
const mod = await import(js);
await mod.default({ module_or_path: wasm });
mod.hydrate();
await wake(document.body, mod, []);
