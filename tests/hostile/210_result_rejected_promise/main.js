const rejected = Promise.reject(new Error("handled"));
rejected.catch(() => {});
[typeof rejected.then];
