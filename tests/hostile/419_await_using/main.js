await using resource = { async [Symbol.asyncDispose]() {} };
1;
