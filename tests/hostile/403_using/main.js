{
  using resource = { [Symbol.dispose]() {} };
}
1;
