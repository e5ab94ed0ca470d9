let looped = false;
"saved";
