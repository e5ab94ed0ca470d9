// Ten bytes are left: six for the first three, three for the fourth, and one that the fifth does not fit into.
console.log("x".repeat((1 << 20) - 11));
console.log("ééé€€€");
"cut";
