// A page transition that the browser gives up is no error of ours; without this it would be reported as one.
for (const moment of ["pageswap", "pagereveal"]) {
  addEventListener(moment, ({ viewTransition }) => {
    for (const step of ["ready", "updateCallbackDone", "finished"]) viewTransition?.[step]?.catch(() => {});
  });
}
