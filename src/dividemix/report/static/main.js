// Fill the sections of the page, from top to bottom.

showOverview();
showTraining();
showLosses();
showNoise(showPair);
showQuality();
showReview();
