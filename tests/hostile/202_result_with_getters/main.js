({ get loops() { for (;;); }, get throws() { throw new Error("no"); }, set it(value) {} });
