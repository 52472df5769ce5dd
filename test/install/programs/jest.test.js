test('require', async () => {
  expect(await require('./byte.cjs')(require('networkdirect/net'))).toBe('received 42');
});
test('one instance', async () => {
  expect(await require('./one.cjs')(require, require)).toBe('one instance');
});
