function named() { throw new Error("here"); }
//# sourceMappingURL=file:///etc/passwd
//# sourceURL=file:///etc/passwd
named();
