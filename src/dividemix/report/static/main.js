// Fill the sections of the page, from top to bottom.

showOverview();
showReview();
showNoise(showPair);
showMap();
showQuality();
showTraining();
showLosses();
showSettings();
