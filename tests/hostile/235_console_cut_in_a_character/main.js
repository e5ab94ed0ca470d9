console.log("ééé€€€");
"cut";
