const circle = { name: "circle" };
circle.self = circle;
circle;
