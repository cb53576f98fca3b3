// Stands in the bundle for react-devtools-core, which ink would load while it is itself developed.
export default {};
