await new Promise((resolve) => setTimeout(resolve, 995));
"done";
