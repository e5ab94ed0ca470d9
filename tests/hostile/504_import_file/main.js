const secrets = await import("file:///etc/passwd", { with: { type: "json" } });
