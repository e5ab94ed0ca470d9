let both = {};
for (let i = 0; i < 60; i++) both = { left: both, right: both };
both;
