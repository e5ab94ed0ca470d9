for (let i = 0; ; i++) Symbol.for(`symbol ${i}`);
